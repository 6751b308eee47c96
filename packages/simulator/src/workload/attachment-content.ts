import { createHash } from 'node:crypto'

/** Names content: who made it, a number, its length in bytes. Content of one name is always the same. */
export type ContentName = string

export function contentName(maker: string, number: number, length: number): ContentName {
  return `${maker}.${number}.${length}`
}

/** ASCII, so that it is the same as text and as bytes. */
export function attachmentContent(name: ContentName): string {
  const length = Number(name.split('.').at(-1))
  return `${name}|`.repeat(Math.ceil(length / (name.length + 1))).slice(0, length)
}

/**
 * The name of content that was read; undefined: it is too short to tell.
 *
 * @throws RangeError when it is nobody's content
 */
export function readContent(text: string): ContentName | undefined {
  const name = /^[a-z0-9]+\.\d+\.\d+(?=\|)/.exec(text)?.[0]
  if (name === undefined && text.length < nameLengthMax) return undefined
  if (name === undefined || attachmentContent(name) !== text) {
    throw new RangeError(`${text.length} bytes are no content that was written: ${text.slice(0, nameLengthMax)}`)
  }
  return name
}

/** As documents list it, for content that is stored as it is. */
export function contentDigest(name: ContentName): string {
  return createHash('md5').update(attachmentContent(name)).digest('base64')
}

const nameLengthMax = 40
