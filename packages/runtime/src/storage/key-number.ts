/**
 * Encodes numbers as parts of keys: digits of 7 bits, most significant first, each as the character with that code.
 * Keys remain text, and their order is the order of the numbers.
 */

/** The highest number that takes four characters. */
export const keyWordMax = 2 ** 28 - 1

/** Returns four characters. @param word an integer from 0 to `keyWordMax` */
export function keyWord(word: number): string {
  return String.fromCharCode(word >>> 21, word >>> 14 & 0x7f, word >>> 7 & 0x7f, word & 0x7f)
}

/** Returns eight characters. @param number an integer from 0 to 2^53 - 1 */
export function keyNumber(number: number): string {
  return keyWord(Math.floor(number / (keyWordMax + 1))) + keyWord(number & keyWordMax)
}

export function readKeyWord(key: string, at: number): number {
  return key.charCodeAt(at) << 21 | key.charCodeAt(at + 1) << 14 | key.charCodeAt(at + 2) << 7 | key.charCodeAt(at + 3)
}

export function readKeyNumber(key: string, at: number): number {
  return readKeyWord(key, at) * (keyWordMax + 1) + readKeyWord(key, at + 4)
}
