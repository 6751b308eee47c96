import { keyTooLong, sortKeyBytesMax } from './key-bytes.ts'
import type { KeyBytes } from './key-bytes.ts'

const escape = 1

/** Writes the UTF-8 of strings such that a 00 ends it and occurs nowhere else: 01 01 for 00, and 01 02 for 01. */
export class RawStringKeys {
  /** @throws ApiError `bad_request` beyond `sortKeyBytesMax` */
  write(text: string, key: KeyBytes): void {
    this.writePrefix(text, key)
    key.push(0)
  }

  /** Writes the bytes with which the keys of all strings begin that start with this text. */
  writePrefix(text: string, key: KeyBytes): void {
    if (text.length > sortKeyBytesMax) throw keyTooLong()
    for (const byte of Buffer.from(text)) {
      if (byte > escape) key.push(byte)
      else {
        key.push(escape)
        key.push(byte + 1)
      }
    }
  }
}
