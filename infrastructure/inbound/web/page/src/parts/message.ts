// Messages of the server as sentences, with the runs that they name.

export interface Piece {
  text: string
  isRun: boolean
}

const ID = /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/i

/** Split a message at the ids of runs. It begins with a capital letter. */
export function pieces(message: string): Piece[] {
  const text = message.charAt(0).toUpperCase() + message.slice(1)
  // At odd places are the parts that the pattern captured.
  return (/\bruns?\b/i.test(text) ? text.split(ID) : [text]).map((one, index) => ({ text: one, isRun: index % 2 === 1 })).filter((one) => one.text !== '')
}

/** Return a message with a mark at its end, so that more can be said after it. */
export function ended(message: string): string {
  return /[.!?…]$/.test(message) ? message : `${message}.`
}
