import { cleanup, fireEvent, render, screen } from '@testing-library/svelte';
import { afterEach, beforeAll, expect, test } from 'vitest';
import QuestionDialog from '../../src/shell/QuestionDialog.svelte';
import { questions, type Question } from '../../src/shell/questions.svelte';

beforeAll(() => {
  // jsdom has the element, but cannot open it.
  HTMLDialogElement.prototype.showModal = function open() {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function close() {
    this.open = false;
  };
});
afterEach(cleanup);

function ask(question: Question): Promise<string | null> {
  const answer = questions.ask(question);
  render(QuestionDialog, { question });
  return answer;
}

test('it names what is affected, and answers yes', async () => {
  const answer = ask({ title: 'Abort?', items: ['train-1', 'train-2'], confirm: 'Abort' });
  expect(screen.getByRole('dialog', { name: 'Abort?' })).toBeTruthy();
  expect(screen.getByText('train-2')).toBeTruthy();
  await fireEvent.click(screen.getByRole('button', { name: 'Abort' }));
  expect(await answer).toBe('');
});

test('cancelling answers no', async () => {
  const answer = ask({ title: 'Abort?', confirm: 'Abort' });
  await fireEvent.click(screen.getByRole('button', { name: 'Cancel' }));
  expect(await answer).toBeNull();
});

test('a text that is asked for must be there', async () => {
  const answer = ask({ title: 'Tag', confirm: 'Tag', input: { label: 'Tags' } });
  const button = screen.getByRole<HTMLButtonElement>('button', { name: 'Tag' });
  expect(button.disabled).toBe(true);
  await fireEvent.input(screen.getByLabelText('Tags'), { target: { value: 'best' } });
  await fireEvent.click(button);
  expect(await answer).toBe('best');
});
