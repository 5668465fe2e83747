/** The parts of a sentence: words, and what stands between backticks. */
export function partsOf(sentence: string): { text: string; isCode: boolean }[] {
  return sentence
    .split(/`([^`]+)`/)
    .map((text, at) => ({ text, isCode: at % 2 === 1 }))
    .filter(({ text }) => text !== '');
}

/** The command in a sentence, or all of it if it is one. */
export function commandIn(sentence: string): string | null {
  if (/^tow \S/.test(sentence)) return sentence;
  const code = partsOf(sentence).filter(({ isCode }) => isCode);
  return code.find(({ text }) => text.startsWith('tow '))?.text ?? code[0]?.text ?? null;
}
