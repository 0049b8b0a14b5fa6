"""Diagnoses of sources and sinks (CKPT4xx), of other files (CKPT5xx), of the kind of checkpoint (CKPT6xx)."""

from ckpt.restart.diagnoses.common import error, note, warning

OFFSETS_WENT_BACK = warning("CKPT401 offsets-went-backwards")
TOPIC_SWITCHED = warning("CKPT406 kafka-topic-switched")
SOURCE_REPLACED = warning("CKPT402 delta-table-replaced")
SOURCE_LOG_HOLE = error("CKPT403 file-source-log-hole")
SOURCE_LOG_LOST = error("CKPT407 file-source-log-lost")
SOURCE_LOG_UNREADABLE = error("CKPT404 source-log-unreadable")
FILE_LOG_EDITED = warning("CKPT408 file-source-log-edited")
SINK_LOG_HOLE = error("CKPT405 file-sink-log-hole")
ORPHAN_SIDECAR_BLOCKS = error("CKPT501 blocking-orphan-checksum-file")
ORPHAN_SIDECAR = note("CKPT502 orphan-checksum-file")
STALE_SIDECAR = note("CKPT503 stale-checksum-file")
DIRECTORY_IN_THE_WAY = error("CKPT504 blocking-directory")
LEFTOVER = note("CKPT505 leftover-temporary-files")
ODD_NAME = error("CKPT506 file-name-read-as-a-batch")
CHANGED_WHILE_READ = note("CKPT507 changed-while-read")
NESTED = note("CKPT508 nested-checkpoint")
TOO_LARGE = error("CKPT509 too-large-to-read")
LINK_OUT = warning("CKPT510 link-out-of-checkpoint")
CONTINUOUS = warning("CKPT601 continuous-processing")
EMPTY = note("CKPT602 empty-checkpoint")
