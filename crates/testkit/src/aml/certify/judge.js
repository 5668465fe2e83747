// Microsoft's validator of traffic over recorded pairs: `node judge.js OAV SPEC PAIRS`. Says, a line of JSON each, what
// it found wrong and, last, how much of what it judged. Clients name newer versions than the published description has,
// and ask run history for a run without its experiment.
const fs = require("fs");
const [, , oav, spec, file] = process.argv;
const { LiveValidator } = require(oav);

const FOLDERS = ["resource-manager/**/stable/2024-04-01", "data-plane/**/preview/2019-09-30"];
const WORKSPACES = /\/providers\/Microsoft\.MachineLearningServices\/workspaces(?=\/|\?|$)/i;

// The address as the description has it; nothing where it has none.
function described({ method, url }) {
  if (!WORKSPACES.test(url)) {
    return undefined;
  }
  if (url.startsWith("/subscriptions/")) {
    // Where a cancellation is asked about is told by the service itself.
    const told = method === "GET" && /\/cancel\?/.test(url);
    return told ? undefined : url.replace(/api-version=[^&]*/, "api-version=2024-04-01");
  }
  if (/\/(rundata|serviceinstances)(?=\/|\?|$)/.test(url) || /\/artifacts\/(content|contentinfo)\/ExperimentRun/.test(url)) {
    return undefined;
  }
  const [path, query] = url.replace(/(\/workspaces\/[^/]+)\/(?:experimentids\/[^/]+\/)?runs\//, "$1/experiments/e/runs/").split("?");
  return `${path}?${query ? query + "&" : ""}api-version=2019-09-30`;
}

async function main() {
  const validator = new LiveValidator({
    directory: spec,
    swaggerPathsPattern: FOLDERS.map((folder) => `specification/machinelearningservices/${folder}/*.json`),
    // What it leaves out by itself holds run history.
    excludedSwaggerPathsPattern: ["**/examples/**/*"],
    git: { shouldClone: false },
    isPathCaseSensitive: false,
  });
  await validator.initialize();
  const operations = {};
  let judged = 0;
  for (const line of fs.readFileSync(file, "utf8").split("\n").filter(Boolean)) {
    const { liveRequest, liveResponse } = JSON.parse(line);
    const url = described(liveRequest);
    if (!liveResponse || !url) {
      continue;
    }
    judged += 1;
    const pair = {
      liveRequest: { ...liveRequest, url: "https://management.azure.com" + url, body: liveRequest.body ?? undefined },
      liveResponse: { ...liveResponse, body: liveResponse.body ?? undefined },
    };
    const result = await validator.validateLiveRequestResponse(pair);
    const status = liveResponse.statusCode;
    for (const side of ["requestValidationResult", "responseValidationResult"]) {
      const found = result[side];
      const operation = found.operationInfo.operationId;
      operations[operation] = (operations[operation] || 0) + 1;
      // A request that the service refused is not held against it.
      const errors = side === "requestValidationResult" && /^[45]/.test(status) ? [] : found.errors;
      const broken = found.runtimeException ? [{ code: "EXCEPTION", message: found.runtimeException.message, pathsInPayload: [] }] : [];
      for (const error of [...errors, ...broken]) {
        console.log(JSON.stringify({ side, operation, code: error.code, message: error.message, where: error.pathsInPayload, status, url }));
      }
    }
  }
  console.log(JSON.stringify({ judged, operations }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
