import { describe, expect, test } from 'vitest'

import { blocksOf, CHARS_MAX, linkTarget, plainText, type Block, type Inline } from './markdown'

const text = (of: string): Inline => ({ kind: 'text', text: of })
const paragraph = (...children: Inline[]): Block => ({ kind: 'paragraph', children })

describe('a text', () => {
  test('leaves out no level of headings', () => {
    const levels = blocksOf('## a\n\n#### b\n\n#### c\n\n# d\n\n### e')!.map((one) => (one.kind === 'heading' ? one.level : null))
    expect(levels).toEqual([1, 2, 2, 1, 2])
  })

  test('has headings, lists, code and tables', () => {
    expect(blocksOf('# A *b*\n\n- one\n- [x] two\n\n3. c\n\n```py\n<b>1 & 2</b>\n```\n\n|h|\n|-|\n|`c`|\n\n> q\n\n---')).toEqual([
      { kind: 'heading', level: 1, children: [text('A '), { kind: 'em', children: [text('b')] }] },
      { kind: 'list', start: null, items: [{ isDone: null, children: [paragraph(text('one'))] }, { isDone: true, children: [paragraph(text('two'))] }] },
      { kind: 'list', start: 3, items: [{ isDone: null, children: [paragraph(text('c'))] }] },
      { kind: 'code', text: '<b>1 & 2</b>', language: 'py' },
      { kind: 'table', head: [[text('h')]], rows: [[[{ kind: 'code', text: 'c' }]]] },
      { kind: 'quote', children: [paragraph(text('q'))] },
      { kind: 'rule' },
    ])
  })

  test('keeps line breaks and decodes what stands for a sign', () => {
    expect(blocksOf('a &lt;b&gt; &amp;amp;\nc')).toEqual([paragraph(text('a <b> &amp;'), { kind: 'break' }, text('c'))])
  })

  test.each(['<img src=x onerror=alert(1)>', '<script>alert(2)</script>', 'a <b onclick=x>b</b>', '<!-- c -->', '<a href="javascript:x">y</a>'])(
    'the HTML %s is text', (html) => {
      const shown = JSON.stringify(blocksOf(html))
      expect(shown).not.toContain('"link"')
      expect(blocksOf(html)!.every((block) => block.kind === 'paragraph' && block.children.every((node) => node.kind === 'text'))).toBe(true)
      expect((blocksOf(html)![0] as { children: { text: string }[] }).children.map((node) => node.text).join('')).toBe(html)
    },
  )
})

describe('a link', () => {
  test.each(['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', '/ui/runs', '//host', '#x', 'http://user:word@host/', 'https://', 'java\tscript:x', `https://a/${'x'.repeat(3_000)}`])(
    'to %s leads nowhere', (href) => {
      expect(linkTarget(href)).toBeNull()
      expect(JSON.stringify(blocksOf(`[name](<${href}>)`))).not.toContain('"kind":"link"')
    },
  )

  test('leads to http and https, and says which host if its text names another', () => {
    expect(blocksOf('[name](https://example.org/a)')).toEqual([paragraph({ kind: 'link', href: 'https://example.org/a', host: null, children: [text('name')] })])
    expect(blocksOf('[https://bank.example](https://evil.example/)')).toMatchObject([{ children: [{ kind: 'link', host: 'evil.example' }] }])
    expect(blocksOf('https://example.org/a')).toMatchObject([{ children: [{ kind: 'link', href: 'https://example.org/a', host: null }] }])
    expect(linkTarget('https://bücher.example/')!.href).toBe('https://xn--bcher-kva.example/')
  })

  test('stands for an image, which is not loaded', () => {
    expect(blocksOf('![alt](https://example.org/i.png)')).toEqual([paragraph({ kind: 'link', href: 'https://example.org/i.png', host: null, children: [text('Image: alt')] })])
  })

  test('without a link shows where it would lead', () => {
    expect(blocksOf('[click](javascript:x)')).toEqual([paragraph(text('click'), text(' (javascript:x)'))])
    expect(blocksOf('a@example.org')).toEqual([paragraph(text('a@example.org'))])
  })
})

const HOSTILE: [string, string][] = [
  ['deep quotes', '>'.repeat(CHARS_MAX)],
  ['deep quotes with blanks', '> '.repeat(CHARS_MAX / 2)],
  ['deep lists', '- '.repeat(CHARS_MAX / 2)],
  ['nested lists', Array.from({ length: 300 }, (_, n) => `${'  '.repeat(n)}- a`).join('\n')],
  ['open brackets', '['.repeat(CHARS_MAX)],
  ['open images', '!['.repeat(CHARS_MAX / 2)],
  ['nested links', '[a]('.repeat(CHARS_MAX / 4)],
  ['stars', '*'.repeat(CHARS_MAX)],
  ['stars and letters', '*a '.repeat(CHARS_MAX / 3)],
  ['emphasis', '**a*'.repeat(CHARS_MAX / 4)],
  ['underscores', '_a_b'.repeat(CHARS_MAX / 4)],
  ['backticks', Array.from({ length: 310 }, (_, n) => '`'.repeat(n)).join(' ')],
  ['open tags', '<a '.repeat(CHARS_MAX / 3)],
  ['open comments', '<!--'.repeat(CHARS_MAX / 4)],
  ['tilde', '~a'.repeat(CHARS_MAX / 2)],
  ['a table', `|${'a|'.repeat(1_000)}\n|${'-|'.repeat(1_000)}\n${`|${'a|'.repeat(1_000)}\n`.repeat(10)}`],
  ['many items', '* a\n'.repeat(CHARS_MAX / 4)],
  ['definitions', Array.from({ length: 2_000 }, (_, n) => `[a${n}]: http://b/${n}`).join('\n')],
  ['blanks', `a${' '.repeat(CHARS_MAX - 2)}b`],
  ['runs of blanks', `a${' '.repeat(399)}`.repeat(CHARS_MAX / 400)],
  ['new lines', '\n'.repeat(CHARS_MAX)],
  ['tabs', `-${'\t'.repeat(CHARS_MAX - 1)}`],
  ['words', 'word '.repeat(CHARS_MAX / 5)],
  ['addresses', 'http://a.b '.repeat(CHARS_MAX / 11)],
  ['at signs', 'a@'.repeat(CHARS_MAX / 2)],
  ['dots', 'a.'.repeat(CHARS_MAX / 2)],
  ['underlines', `a\n${'='.repeat(CHARS_MAX - 2)}`],
  ['letters', 'x'.repeat(CHARS_MAX)],
  ['backslashes', '\\'.repeat(CHARS_MAX)],
  ['open titles', '[a](b "'.repeat(CHARS_MAX / 7)],
  ['too long', 'x'.repeat(CHARS_MAX + 1)],
]

// Without its bounds a parser takes half a minute and more.
test.each(HOSTILE)('%s take little time', (_, hostile) => {
  const before = performance.now()
  const blocks = blocksOf(hostile)
  expect(performance.now() - before).toBeLessThan(4_000)
  expect(blocks === null || JSON.stringify(blocks).length < 50 * CHARS_MAX).toBe(true)
})

test('a text without its marks is lines to read', () => {
  expect(plainText('## Answer for *ticket* 4324\n\n- **one** `a_b`\n- [x] two\n\n3. [three](https://example.org)\n\n> said\n> again\n\n---\n\n|a|b|\n|-|-|\n|c|d|\n\n```py\nx = 1\n\ny = 2\n```')).toBe(
    'Answer for ticket 4324\none a_b\ntwo\nthree\nsaid\nagain\na b\nc d\nx = 1\n\ny = 2',
  )
  const deep = '>'.repeat(2_000)
  expect(plainText(deep)).toBe(deep)
})
