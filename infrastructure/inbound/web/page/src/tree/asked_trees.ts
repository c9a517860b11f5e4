// Which trees one request names: they are in its address, which servers and proxies limit.

const TREES_MAX = 50
/** The server takes 16 KiB. Common proxies take 8 KiB, of which the rest of the request line needs some. */
const ADDRESS_CHARS_MAX = 7_500

/** Return the first of these trees that fit into one address, sorted: the same trees are the same request. */
export function askedTrees(trees: string[]): string[] {
  let chars = 0
  const fitting = trees.slice(0, TREES_MAX).filter((tree) => {
    const needed = new URLSearchParams([['tree', tree]]).toString().length + 1
    const isFitting = chars + needed <= ADDRESS_CHARS_MAX
    if (isFitting) chars += needed
    return isFitting
  })
  return fitting.sort()
}
