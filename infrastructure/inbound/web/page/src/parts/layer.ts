// Where menus and popovers are put in the document.

/** Return the element that floating parts are children of: the main landmark, where links and keys of
 * the page work too, and where no table cuts them. */
export function layer(): Element {
  return document.querySelector('main') ?? document.body
}

/** Keep a key that was pressed in a floating part from the page, which has keys of its own. Escape passes,
 * because the part is closed by it from outside. */
export function keepKey(event: KeyboardEvent): void {
  if (event.key !== 'Escape') event.stopPropagation()
}
