/** Converts between milliseconds since 1970 and UTC dates of the proleptic Gregorian calendar, without `Date`. */

const dayMs = 86_400_000
const daysPerEra = 146_097
/** Days from the first of March of year 0 to 1970. */
const epochDay = 719_468
const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const isoForm = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})Z$/

interface CivilDate { readonly year: number; readonly month: number; readonly day: number }

/**
 * Computes with years that begin in March, so that the leap day is the last day of a year. See Howard Hinnant,
 * "chrono-Compatible Low-Level Date Algorithms".
 */
function civilDate(days: number): CivilDate {
  const shifted = days + epochDay
  const era = Math.floor(shifted / daysPerEra)
  const dayOfEra = shifted - era * daysPerEra
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153)
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month,
    day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
  }
}

function daysOf({ year, month, day }: CivilDate): number {
  const shiftedYear = month <= 2 ? year - 1 : year
  const era = Math.floor(shiftedYear / 400)
  const yearOfEra = shiftedYear - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  const leapDays = Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100)
  return era * daysPerEra + yearOfEra * 365 + leapDays + dayOfYear - epochDay
}

function timeOfDay(ms: number): string {
  const seconds = Math.floor((ms - Math.floor(ms / dayMs) * dayMs) / 1000)
  return [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map(part => pad(part, 2)).join(':')
}

function pad(value: number, digits: number): string {
  return String(value).padStart(digits, '0')
}

/** `2025-07-21T16:00:00Z`. */
export function formatIsoTime(ms: number): string {
  const { year, month, day } = civilDate(Math.floor(ms / dayMs))
  return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}T${timeOfDay(ms)}Z`
}

/** Milliseconds since 1970 of `2025-07-21T16:00:00Z`, or null for any other text. */
export function parseIsoTime(text: string): number | null {
  const match = isoForm.exec(text)
  if (match === null) return null
  const [year, month, day, hour, minute, second] = match.slice(1)
    .map(Number) as [number, number, number, number, number, number]
  const ms = daysOf({ year, month, day }) * dayMs + ((hour * 60 + minute) * 60 + second) * 1000
  // A day or an hour that does not exist, such as 30 February, is formatted as a different one.
  return formatIsoTime(ms) === text ? ms : null
}

/** `Mon, 21 Jul 2025 16:00:00 GMT` (RFC 9110, IMF-fixdate). */
export function formatHttpTime(ms: number): string {
  const days = Math.floor(ms / dayMs)
  const { year, month, day } = civilDate(days)
  return `${weekdays[((days % 7) + 11) % 7]}, ${pad(day, 2)} ${months[month - 1]} ${pad(year, 4)} ${timeOfDay(ms)} GMT`
}
