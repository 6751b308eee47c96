import { createHash } from 'node:crypto'

/** Identifies content by its writer, a number, and its length in bytes. Content of one name is always the same. */
export type ContentName = string

export function contentName(maker: string, number: number, length: number): ContentName {
  return `${maker}.${number}.${length}`
}

/** Returns the content. It is ASCII, so that it has the same length as text and as bytes. */
export function attachmentContent(name: ContentName): string {
  const length = Number(name.split('.').at(-1))
  return `${name}|`.repeat(Math.ceil(length / (name.length + 1))).slice(0, length)
}

/**
 * Returns the name of content that was read, or undefined when it is too short to contain its name.
 *
 * @throws RangeError when it is not the content of any name
 */
export function readContent(text: string): ContentName | undefined {
  const name = /^[a-z0-9]+\.\d+\.\d+(?=\|)/.exec(text)?.[0]
  if (name === undefined && text.length < nameLengthMax) return undefined
  if (name === undefined || attachmentContent(name) !== text) {
    throw new RangeError(`${text.length} bytes are no content that was written: ${text.slice(0, nameLengthMax)}`)
  }
  return name
}

/** Returns the digest that documents list for content that is stored uncompressed. */
export function contentDigest(name: ContentName): string {
  return createHash('md5').update(attachmentContent(name)).digest('base64')
}

const nameLengthMax = 40
