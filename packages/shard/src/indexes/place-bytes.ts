/** Reads places of rows from bytes (`placeText`), because the text of a whole place is seldom needed. */
import type { RowPlace } from '@sectional/core'
import { readPlace } from './index-keys.ts'

/** Longer places are read as text. */
const bytesMax = 512
const placeBytes = Buffer.allocUnsafeSlow(bytesMax)
const keyBytes = Buffer.allocUnsafeSlow(bytesMax)
/** Each character of a key is one byte. UTF-8 begins those from U+0100 on with this byte or a greater one. */
const noKeyByte = 0xc4

/** Returns a place of which `bytes` contain the beginning and the rest in different positions, as UTF-8. */
export function readPlaceBytes(
  bytes: Buffer, startFrom: number, startTo: number, restFrom: number, restTo: number,
): RowPlace {
  const length = startTo - startFrom + restTo - restFrom
  if (length <= bytesMax) {
    let to = 0
    for (let at = startFrom; at < startTo; at++) placeBytes[to++] = bytes[at]!
    for (let at = restFrom; at < restTo; at++) placeBytes[to++] = bytes[at]!
    const place = readShort(length)
    if (place !== undefined) return place
  }
  return readPlace(bytes.toString('utf8', startFrom, startTo) + bytes.toString('utf8', restFrom, restTo))
}

/** Reads the place in `placeBytes`. Returns undefined for the rare ones that only `readPlace` can read. */
function readShort(length: number): RowPlace | undefined {
  let keyLength = 0
  let at = 0
  for (; placeBytes[at] !== 0 || placeBytes[at + 1] !== 0; at++) {
    const byte = placeBytes[at]!
    if (at >= length || byte >= noKeyByte) return undefined
    if (byte === 0) at++
    keyBytes[keyLength++] = byte < 0x80 ? byte : (byte & 3) << 6 | placeBytes[++at]! & 0x3f
  }
  const idFrom = at + 2
  let idTo = idFrom
  while (idTo < length && placeBytes[idTo] !== 0) idTo++
  // The id has an escape, or the number more than one character.
  if (placeBytes[idTo + 1] !== 0 || idTo + 3 !== length) return undefined
  return {
    key: keyBytes.toString('latin1', 0, keyLength), id: placeBytes.toString('utf8', idFrom, idTo),
    number: placeBytes[length - 1]!,
  }
}
