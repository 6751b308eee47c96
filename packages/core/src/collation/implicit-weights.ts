/** Primary weights that are computed instead of being listed in the table. All are numbers of 32 bits. */

/** Lead byte of the weights of code points without a character. */
const unassignedLead = 0xfe

/**
 * Returns the primary weight of a code point that is not assigned: two bytes of 251 and 254 values and a last byte of
 * 18 values, in the order of the code points.
 */
export function unassignedPrimary(codePoint: number): number {
  const position = codePoint + 1
  const fourth = 2 + position % 18 * 14
  const third = 2 + Math.floor(position / 18) % 254
  const second = 4 + Math.floor(position / (18 * 254))
  return unassignedLead << 24 | second << 16 | third << 8 | fourth
}

/**
 * Returns the weight that is `offset` places after a weight of three bytes. The second byte is from 4 to 254 if the
 * lead byte is compressible, otherwise from 2 to 255; the third byte is from 2 to 255.
 */
export function primaryAtOffset(primary: number, offset: number, isCompressible: boolean): number {
  const secondLeast = isCompressible ? 4 : 2
  const secondCount = isCompressible ? 251 : 254
  const third = (primary >>> 8 & 0xff) - 2 + offset
  const second = (primary >>> 16 & 0xff) - secondLeast + Math.floor(third / 254)
  const lead = (primary >>> 24) + Math.floor(second / secondCount)
  return lead << 24 | secondLeast + second % secondCount << 16 | 2 + third % 254 << 8
}
