// Files are named after the concept that they hold.
const bannedFileNames = /^(utils?|helpers?|common|types|misc|shared)(\.test)?\.(ts|mjs)$/

export function nameFindings(file) {
  const name = file.path.split('/').at(-1)
  return bannedFileNames.test(name) ? [`${file.path}: name the file after its concept`] : []
}
