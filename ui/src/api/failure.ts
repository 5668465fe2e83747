import type { Failure } from './types';

/** A call that was answered with an error. The message is for people. */
export class CallFailed extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message);
  }
}

/** Nothing answered: the program has ended, or the connection broke. */
export class Unreachable extends Error {}

/** The token is missing or wrong. */
export class NotLetIn extends Error {}

/** What a person is told about an error, whatever threw it. */
export function failureOf(error: unknown): Failure {
  if (error instanceof CallFailed) return error.failure;
  if (error instanceof Unreachable) {
    return {
      error: 'unreachable',
      message: 'tow ui does not answer',
      hints: ['if it has ended, start it again: tow ui'],
      exit_code: 125,
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { error: 'bug', message, hints: [], exit_code: 127 };
}

export function aborted(): DOMException {
  return new DOMException('the caller gave the call up', 'AbortError');
}

/** Whether the caller itself gave the call up. Nobody needs to be told. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}
