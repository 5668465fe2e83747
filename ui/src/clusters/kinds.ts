/** What people call the kinds of clusters. */
const WORDS: Record<string, string> = {
  local: 'this machine',
  slurm: 'Slurm',
  azureml: 'Azure ML',
  kubernetes: 'Kubernetes',
  philly: 'Philly',
};

export function kindWords(kind: string): string {
  return WORDS[kind] ?? kind;
}

/** Somebody signs in to these with a code; to the others ssh has its own way. */
export function hasSignIn(kind: string): boolean {
  return kind === 'azureml';
}

export const SLURM_LINES = `clusters:
  lab:
    kind: slurm
    host: login        # as you would say it to ssh
`;

export const AZURE_LINES = `clusters:
  aml:
    kind: azureml
    subscription: SUBSCRIPTION
    resource_group: GROUP
    workspace: WORKSPACE
    compute: COMPUTE
`;
