/** Returns the JSON text of a value for an error text, with `...` behind its first characters when it is longer. */
export function shortJson(value: unknown, charactersMax: number): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax)}...`
}
