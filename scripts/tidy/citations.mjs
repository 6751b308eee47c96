// Every path and heading that comments and pages of Markdown cite exists.
import { posix } from 'node:path'

/**
 * A path below a top folder, a path that begins with `../`, or a name with an ending of the project's files; with the
 * heading of a page.
 */
const citation = new RegExp([
  String.raw`(?<![\w./@:*<>{}$=-])`,
  String.raw`((?:packages|docs|scripts|bench|test-cluster|deploy)\/[\w.*/-]*`,
  String.raw`|(?:\.\.\/)+[\w-][\w.*/-]*`,
  String.raw`|(?:\.{1,2}\/)*[\w-][\w.*-]*(?:\/[\w.*-]+)*\.(?:ts|mjs|md|proto)\b(?!\())`,
  String.raw`(#[\w-]+)?`,
].join(''), 'g')
/** A folder, or a file without its ending, as pages for engineers name the parts of a package. */
const part = /`([a-z][a-z0-9-]*(?:\/[a-z0-9-]+)+\/?|[a-z][a-z0-9-]*\/)`/g
const engineersPages = /^packages\/|^docs\/(architecture|hacking)\.md$|^docs\/decisions\//
const mediaType = /^(application|image|multipart|text)\//
const link = /\]\(([^)\s]+)\)/g
/** What tools make, and pages of other projects (`host/path`). */
const elsewhere = /(^|\/)(dist|node_modules)(\/|$)|^[\w-]+(\.[\w-]+)+\//

/**
 * @param {string[]} paths of all files of the project
 * @param files sources, whose comments are read
 * @param pages of Markdown, which are read outside their links as comments are
 * @returns {string[]} one line per citation of something that is not there
 */
export function citationFindings(paths, files, pages) {
  const project = new Project(paths, pages)
  return [
    ...files.flatMap(({ path, comments }) => citedIn(path, comments, project)),
    ...pages.flatMap(({ path, text }) => [
      ...citedIn(path, text.replace(link, ']'), project),
      ...partsIn(path, text, project),
      ...linksOf(path, text, project),
    ]),
  ]
}

function citedIn(path, text, project) {
  const findings = []
  for (const [, cited, heading] of text.matchAll(citation)) {
    const name = cited.replace(/^(\.{1,2}\/)+/, '').replace(/[./]+$/, '')
    if (elsewhere.test(name)) continue
    if (!project.has(name)) findings.push(`${path}: cites ${cited.replace(/\.$/, '')}, which does not exist`)
    else if (heading !== undefined && !project.hasHeading(project.pageOf(name), heading)) {
      findings.push(`${path}: cites the heading ${cited}${heading}, which does not exist`)
    }
  }
  return findings
}

function partsIn(path, text, project) {
  if (!engineersPages.test(path)) return []
  return [...text.matchAll(part)].map(([, cited]) => cited)
    .filter(cited => !mediaType.test(cited) && !elsewhere.test(cited) && !project.has(cited.replace(/\/$/, '')))
    .map(cited => `${path}: cites ${cited}, which does not exist`)
}

function linksOf(path, text, project) {
  const findings = []
  for (const [, target] of text.matchAll(link)) {
    if (/^[a-z]+:/.test(target)) continue
    const [relative, heading] = target.split('#')
    const page = relative === '' ? path : posix.join(posix.dirname(path), relative).replace(/\/$/, '')
    if (!project.hasExactly(page)) findings.push(`${path}: links to ${target}, which does not exist`)
    else if (heading !== undefined && !project.hasHeading(page, `#${heading}`)) {
      findings.push(`${path}: links to the heading ${target}, which does not exist`)
    }
  }
  return findings
}

class Project {
  /** Files and folders. */
  #paths
  /** Their paths without some of the outer folders, as they are cited near by. */
  #endings
  #pages

  constructor(paths, pages) {
    const folders = paths.flatMap(path => ancestors(path))
    this.#paths = new Set([...paths, ...folders])
    this.#endings = new Set([...this.#paths].flatMap(path => endings(path)))
    this.#pages = new Map(pages.map(page => [page.path, headingsOf(page.text)]))
  }

  /** @param name a path from the top or any other folder, with or without its ending; `*` stands for any text */
  has(name) {
    if (!name.includes('*')) return this.#endings.has(name)
    const pattern = name.split('*').map(part => part.replaceAll('.', '\\.')).join('.*')
    const expression = new RegExp(`(^|/)${pattern}$`)
    return [...this.#paths].some(path => expression.test(path))
  }

  hasExactly(path) {
    return this.#paths.has(path)
  }

  pageOf(name) {
    return [...this.#pages.keys()].find(path => path === name || path.endsWith(`/${name}`))
  }

  hasHeading(page, heading) {
    return this.#pages.get(page)?.has(heading) ?? false
  }
}

function ancestors(path) {
  const parts = path.split('/')
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'))
}

function endings(path) {
  const parts = path.split('/')
  const ends = parts.map((_, index) => parts.slice(index).join('/'))
  // Beyond a package's own pages its files are known as `package/folder/file`.
  const inPackages = parts[2] === 'src' ? [[parts[1], ...parts.slice(3)].join('/')] : []
  return [...ends, ...inPackages].flatMap(end => [end, end.replace(/\.\w+$/, '')])
}

/** The headings of a page as anchors: as GitHub makes them. */
function headingsOf(text) {
  const anchors = new Set()
  for (const [, title] of text.replace(/^```[^]*?^```/gm, '').matchAll(/^#+ +(.*)$/gm)) {
    const words = title.trim().toLowerCase().replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[^\p{L}\p{N}\s_-]/gu, '')
    const anchor = `#${words.replace(/\s/g, '-')}`
    let unique = anchor
    for (let i = 1; anchors.has(unique); i++) unique = `${anchor}-${i}`
    anchors.add(unique)
  }
  return anchors
}
