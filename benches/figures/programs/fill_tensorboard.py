"""Makes runs with TensorBoard's library: fill_tensorboard.py FOLDER RUNS"""

import sys
import time

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

folder, runs = sys.argv[1], int(sys.argv[2])
for number in range(runs):
    writer = EventFileWriter(f"{folder}/runs/bench-{number:04}")
    loss = Summary(value=[Summary.Value(tag="loss", simple_value=0.5)])
    writer.add_event(Event(step=0, wall_time=time.time(), summary=loss))
    writer.close()
