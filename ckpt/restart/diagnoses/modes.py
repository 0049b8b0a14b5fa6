"""Diagnoses of real-time mode, declarative pipelines and other younger modes (CKPT25x)."""

from ckpt.restart.findings import error, note, warning

REAL_TIME_REFUSED = error("CKPT250 real-time-mode-refused")
REAL_TIME_FORMAT = error("CKPT251 real-time-mode-needs-format-2")
PLANNED_DELETED = note("CKPT252 planned-batch-deleted")
NOT_FOR_REAL_TIME = error("CKPT253 start-not-for-real-time-mode")
CONTINUOUS_REFUSED = error("CKPT255 continuous-trigger-refused")
PROVIDER_OF_SESSION = warning("CKPT254 session-with-another-provider")
UNFINISHED_VERSION = error("CKPT256 pipeline-version-without-batches")
SUPERSEDED = note("CKPT257 superseded-pipeline-version")
SHARED_TABLE = warning("CKPT258 flows-share-a-table")
AUTO_LOADER = note("CKPT260 auto-loader-source")
AUTO_LOADER_INCOMPLETE = warning("CKPT261 auto-loader-files-missing")
ONLY_DATABRICKS = warning("CKPT262 source-of-databricks")
