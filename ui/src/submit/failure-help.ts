/** What to do about a submission that was refused, by the word of its error. */
const HELP: Record<string, { says: string; commands: string[] }> = {
  config: {
    says: 'The job file or the configuration holds something that cannot be used. The message names the key.',
    commands: ['tow config show --origin'],
  },
  unreachable: {
    says: 'The cluster or the datastore does not answer. A submission that was accepted is carried on by itself once it does.',
    commands: ['tow doctor', 'tow clusters'],
  },
  refused: {
    says: 'It was refused: somebody has to sign in, a right or a quota is missing, or it can never fit there.',
    commands: ['tow login', 'tow clusters', 'tow nodes'],
  },
  not_found: {
    says: 'A name is not known there: a cluster, a datastore, an image, an identity or a run.',
    commands: ['tow clusters --discover', 'tow ls'],
  },
};

const ANY = { says: 'Something on the way does not work. This says what is in order and what is not.', commands: ['tow doctor'] };

export function helpFor(error: string): { says: string; commands: string[] } {
  return HELP[error] ?? ANY;
}
