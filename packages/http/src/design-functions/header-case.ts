/** Capitalises each word of a header's name, as functions that were written for CouchDB expect: `User-Agent`. */
export function usualCase(name: string): string {
  return name.toLowerCase().replace(/(?:^|-)[a-z]/g, start => start.toUpperCase())
}
