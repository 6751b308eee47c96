import {
  choice, converted, defaultValues, flag, integer, list, LiveOptions, option, optionalText, parseValues, text,
} from '@sectional/core/options'
import { expect } from 'chai'

const table = {
  sizeMax: option('store/size', integer({ min: 1, max: 100, infinite: true }), {
    default: 7, effect: 'live', help: '',
  }),
  part: converted(option('store/percent', integer({ min: 0, max: 100 }), {
    default: 50, effect: 'live', help: '',
  }), percent => percent / 100),
  mode: option('store/mode', choice('fast', 'safe'), { default: 'safe', effect: 'restart', help: '' }),
}

function reader(settings: Readonly<Record<string, string>>): (section: string, key: string) => string | undefined {
  return (section, key) => settings[`${section}/${key}`]
}

describe('options', () => {
  it('have typed values, either the default or the setting', () => {
    expect(defaultValues(table)).to.deep.equal({ sizeMax: 7, part: 0.5, mode: 'safe' })
    const values = parseValues(table, reader({ 'store/size': 'infinity', 'store/percent': '25', 'other/mode': 'fast' }))
    expect(values).to.deep.equal({ sizeMax: Infinity, part: 0.25, mode: 'safe' })
    expect(Object.isFrozen(values)).to.equal(true)
  })

  it('refuse values that their type does not allow, and name the allowed ones', () => {
    for (const [type, given, message] of [
      [integer({ min: 0, max: 9 }), '10', 'only an integer from 0 to 9 is allowed'],
      [integer({ min: 0, max: 9 }), 'infinity', 'only an integer from 0 to 9 is allowed'],
      [integer({ min: -9, max: 9, infinite: true }), '1.5', 'only an integer from -9 to 9, or infinity is allowed'],
      [flag, 'yes', 'only true and false are allowed'],
      [choice('a', 'b'), 'c', 'only a, b are allowed'],
    ] as const) expect(() => type.parse(given), given).to.throw(message)
  })

  it('format their defaults as text that they parse to the same value', () => {
    expect(list.parse(list.format(['a', 'b'])!)).to.deep.equal(['a', 'b'])
    expect(list.parse(list.format([])!)).to.deep.equal([])
    expect(flag.parse(flag.format(true)!)).to.equal(true)
    expect([text.format(''), optionalText.format(undefined)]).to.deep.equal(['', null])
    const texts = Object.values(table).map(declared => declared.defaultText)
    expect(texts).to.deep.equal(['7', '50', 'safe'])
  })
})

describe('live options', () => {
  it('change with their settings, but options that are read at the start do not', () => {
    const settings: Record<string, string> = {}
    const live = new LiveOptions(table, reader(settings))
    const { values } = live
    Object.assign(settings, { 'store/size': '9', 'store/percent': '10', 'store/mode': 'fast' })
    expect(values).to.deep.equal({ sizeMax: 7, part: 0.5, mode: 'safe' })
    live.refresh()
    expect(values).to.deep.equal({ sizeMax: 9, part: 0.1, mode: 'safe' })
    delete settings['store/size']
    live.refresh()
    expect(values.sizeMax).to.equal(7)
  })

  it('have their defaults while their setting is invalid', () => {
    const settings: Record<string, string> = { 'store/size': '9', 'store/percent': '10' }
    const live = new LiveOptions(table, reader(settings))
    settings['store/size'] = 'much'
    live.refresh()
    expect(live.values).to.deep.equal({ sizeMax: 7, part: 0.1, mode: 'safe' })
  })

  it('are refused as a whole at the start when one setting is invalid', () => {
    expect(() => new LiveOptions(table, reader({ 'store/mode': 'slow' }))).to.throw('only fast, safe are allowed')
  })
})
