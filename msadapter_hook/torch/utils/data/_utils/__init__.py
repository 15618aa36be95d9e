# Parts of the DataLoader: collating, fetching, worker threads and their random streams.
MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks at whether the workers still live

from . import collate, fetch, pin_memory, worker
