"""Makes runs with MLflow's library: fill_mlflow.py FOLDER RUNS"""

import sys

from mlflow.tracking import MlflowClient

folder, runs = sys.argv[1], int(sys.argv[2])
client = MlflowClient(f"sqlite:///{folder}/runs.db")
experiment = client.create_experiment("bench")
for number in range(runs):
    run = client.create_run(experiment, run_name=f"bench-{number:04}").info.run_id
    client.log_param(run, "lr", 0.1)
    client.log_metric(run, "loss", 0.5)
    client.set_terminated(run)
