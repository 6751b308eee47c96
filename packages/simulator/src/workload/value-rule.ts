/** The rule that clients save as a validation function. It refuses one value in five. */

/** Id of the design document that contains the rule. */
export const rulesDesign = '_design/rules'

/** Returns whether the rule refuses documents with that value of the member `v`, such as `c1.8`. */
export function isRefused(value: string): boolean {
  return Number(value.split('.')[1]) % 5 === 3
}

/** The rule as a validation function. */
export const ruleSource = `function (doc) {
  if ((${isRefused})(String(doc.v))) throw { forbidden: 'The rule refuses the value ' + doc.v }
}`
