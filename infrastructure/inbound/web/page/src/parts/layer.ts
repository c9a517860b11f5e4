// Where menus and popovers are put in the document.

/** Return the element that floating parts are children of: the main landmark, where links and keys of
 * the page work too, and where no table cuts them. */
export function layer(): Element {
  return document.querySelector('main') ?? document.body
}
