"""Makes runs with Aim's library: fill_aim.py FOLDER RUNS"""

import sys

from aim import Repo, Run

folder, runs = sys.argv[1], int(sys.argv[2])
Repo.from_path(folder, init=True)
for number in range(runs):
    run = Run(repo=folder, experiment="bench", capture_terminal_logs=False, system_tracking_interval=None)
    run.name = f"bench-{number:04}"
    run["lr"] = 0.1
    run.track(0.5, name="loss", step=0)
    run.close()
