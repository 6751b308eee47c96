/**
 * A root hook of mocha: a promise that rejects and that nobody handles fails the test that runs. mocha 12 ignores it
 * otherwise, while a node would end. Workers remove all listeners behind each file, so each file adds it again. The
 * suites whose nodes are processes go without it: PouchDB leaves rejections of requests unhandled when a node crashes.
 */
function fail(reason) {
  throw reason instanceof Error ? reason : new Error(`a promise was rejected with ${String(reason)}`)
}

export const mochaHooks = {
  beforeAll() { process.on('unhandledRejection', fail) },
  afterAll() { process.off('unhandledRejection', fail) },
}
