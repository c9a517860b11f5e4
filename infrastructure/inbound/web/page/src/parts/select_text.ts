// Fields whose text a reader replaces more often than they edit it.

/** Select the text of a field when a click gives it the focus: what is typed next replaces it. */
export function selectsText(field: HTMLInputElement): () => void {
  let isEntered = false
  const onpointerdown = (): void => { isEntered = document.activeElement !== field }
  const onclick = (): void => {
    if (isEntered && field.selectionStart === field.selectionEnd) field.select()
    isEntered = false
  }
  field.addEventListener('pointerdown', onpointerdown)
  field.addEventListener('click', onclick)
  return () => {
    field.removeEventListener('pointerdown', onpointerdown)
    field.removeEventListener('click', onclick)
  }
}
