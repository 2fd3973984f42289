"""The engine behind every front end. It opens a workspace, keeps its index fresh, and answers queries."""

import os

# Before numpy is imported: a few megabytes of vectors are multiplied fastest by one thread, and more threads would wait
# for each other when cores are busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
