// Markdown of models and callers as a tree of plain values, which Svelte elements show. No HTML is made
// of it: HTML in the text is text.

import { Lexer, type Token, type Tokens } from 'marked'

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong'; children: Inline[] }
  | { kind: 'em'; children: Inline[] }
  | { kind: 'del'; children: Inline[] }
  /** `host` is set if the text of the link looks like another address. */
  | { kind: 'link'; href: string; host: string | null; children: Inline[] }
  | { kind: 'break' }

export type Block =
  | { kind: 'paragraph'; children: Inline[] }
  | { kind: 'heading'; level: number; children: Inline[] }
  | { kind: 'code'; text: string; language: string }
  | { kind: 'quote'; children: Block[] }
  | { kind: 'list'; start: number | null; items: { isDone: boolean | null; children: Block[] }[] }
  | { kind: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' }

/** A longer text is shown as it is: to parse it would hold up the page. */
export const CHARS_MAX = 50_000
const LINES_MAX = 2_000
const NODES_MAX = 5_000
const DEPTH_MAX = 16
const HREF_CHARS_MAX = 2_000
// What a parser takes much time for: it grows with the square of the length of each.
const TOO_DEEP = new RegExp(`^(?:[ \\t]*(?:[>*+-]|\\d{1,9}[.)])){${DEPTH_MAX},}`, 'm')
const RUN_OF_BLANKS = /[ \t]{400}/
const RUN_OF_MARKS = /[[\]*_~`!<]{200,}|(?:[[\]*_~`<(][^\n]{0,2}){1000,}/

class TooMuchError extends Error {}

/** Return the blocks of a text; null if it is too long, too deep or too intricate to be formatted. */
export function blocksOf(text: string): Block[] | null {
  if (text.length > CHARS_MAX || text.split('\n', LINES_MAX + 1).length > LINES_MAX) return null
  if ([TOO_DEEP, RUN_OF_BLANKS, RUN_OF_MARKS].some((intricate) => intricate.test(text))) return null
  try {
    return new Reader().blocks(Lexer.lex(text, { gfm: true, breaks: true }), 0)
  } catch (error) {
    // A parser that recurses too deep ends with a RangeError.
    if (error instanceof TooMuchError || error instanceof RangeError) return null
    throw error
  }
}

/** Return the address of a link as the browser reads it; null for any but http and https. */
export function linkTarget(href: string): URL | null {
  if (href.length > HREF_CHARS_MAX || !/^https?:\/\//i.test(href) || !URL.canParse(href)) return null
  const url = new URL(href)
  return url.username === '' && url.password === '' ? url : null
}

class Reader {
  #nodes = 0
  /** The depths of the headings above the next one. */
  #depths: number[] = []

  blocks(tokens: Token[], depth: number): Block[] {
    const blocks: Block[] = []
    for (const token of tokens as (Tokens.Generic & Token)[]) {
      this.#count(depth)
      switch (token.type) {
        case 'space':
        case 'def':
          break
        case 'heading':
          // No level is left out, as screen readers need it, whichever depths the text uses.
          this.#depths = [...this.#depths.filter((one) => one < (token['depth'] as number)), token['depth'] as number]
          blocks.push({ kind: 'heading', level: this.#depths.length, children: this.inlines(token.tokens, depth + 1) })
          break
        case 'code':
          blocks.push({ kind: 'code', text: token['text'] as string, language: ((token['lang'] as string | undefined) ?? '').slice(0, 40) })
          break
        case 'hr':
          blocks.push({ kind: 'rule' })
          break
        case 'blockquote':
          blocks.push({ kind: 'quote', children: this.blocks(token.tokens ?? [], depth + 1) })
          break
        case 'list':
          blocks.push(this.#list(token as Tokens.List, depth))
          break
        case 'table':
          blocks.push(this.#table(token as Tokens.Table, depth))
          break
        case 'html':
          blocks.push({ kind: 'paragraph', children: [{ kind: 'text', text: token.raw.trimEnd() }] })
          break
        default:
          blocks.push({ kind: 'paragraph', children: token.tokens ? this.inlines(token.tokens, depth + 1) : [{ kind: 'text', text: token.raw }] })
      }
    }
    return blocks
  }

  inlines(tokens: Token[] | undefined, depth: number): Inline[] {
    return (tokens ?? []).flatMap((token) => this.#inline(token as Tokens.Generic & Token, depth))
  }

  #inline(token: Tokens.Generic & Token, depth: number): Inline[] {
    this.#count(depth)
    switch (token.type) {
      case 'strong':
      case 'em':
      case 'del':
        return [{ kind: token.type, children: this.inlines(token.tokens, depth + 1) }]
      case 'codespan':
        return [{ kind: 'code', text: token['text'] as string }]
      case 'br':
        return [{ kind: 'break' }]
      case 'link':
        return this.#link(token['href'] as string, this.inlines(token.tokens, depth + 1))
      case 'image':
        return this.#link(token['href'] as string, [{ kind: 'text', text: `Image: ${(token['text'] as string) || 'without a description'}` }])
      case 'escape':
        return [{ kind: 'text', text: token['text'] as string }]
      case 'text':
        return token.tokens ? this.inlines(token.tokens, depth + 1) : [{ kind: 'text', text: decoded(token['text'] as string) }]
      default:
        return [{ kind: 'text', text: token.raw }]
    }
  }

  #link(href: string, children: Inline[]): Inline[] {
    const url = linkTarget(href)
    const text = plain(children)
    if (url === null) return text === href || href === `mailto:${text}` ? children : [...children, { kind: 'text', text: ` (${href})` }]
    const looksLikeAddress = /^\s*(https?:|www\.|([\w-]+\.)+[a-z]{2,}(\/|\s*$))/i.test(text)
    return [{ kind: 'link', href: url.href, host: looksLikeAddress && !text.toLowerCase().includes(url.host) ? url.host : null, children }]
  }

  #list(token: Tokens.List, depth: number): Block {
    const items = token.items.map((item) => ({
      isDone: item.task ? item.checked === true : null,
      children: this.blocks(item.tokens.filter((one) => one.type !== 'checkbox'), depth + 1),
    }))
    return { kind: 'list', start: token.ordered ? Number(token.start) || 0 : null, items }
  }

  #table(token: Tokens.Table, depth: number): Block {
    const cells = (row: Tokens.TableCell[]): Inline[][] => row.map((cell) => this.inlines(cell.tokens, depth + 1))
    return { kind: 'table', head: cells(token.header), rows: token.rows.map(cells) }
  }

  #count(depth: number): void {
    this.#nodes += 1
    if (this.#nodes > NODES_MAX || depth > DEPTH_MAX) throw new TooMuchError()
  }
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: '\u00a0' }

function decoded(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name: string) => ENTITIES[name]!)
}

function plain(nodes: Inline[], lineBreak = ' '): string {
  return nodes.map((node) => (node.kind === 'break' ? lineBreak : 'text' in node ? node.text : plain(node.children, lineBreak))).join('')
}

/** Return a text without its marks, for a preview; the text itself if it cannot be formatted. */
export function plainText(text: string): string {
  const blocks = blocksOf(text)
  return blocks === null ? text : linesOf(blocks)
}

function linesOf(blocks: Block[]): string {
  return blocks.flatMap((block) => {
    switch (block.kind) {
      case 'rule': return []
      case 'code': return block.text
      case 'quote': return linesOf(block.children)
      case 'list': return block.items.map((item) => linesOf(item.children))
      case 'table': return [block.head, ...block.rows].map((row) => row.map((cell) => plain(cell)).join(' '))
      default: return plain(block.children, '\n')
    }
  }).join('\n')
}
