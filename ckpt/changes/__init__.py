"""The only code that changes a checkpoint: steps, backup, apply, undo. What is to be changed, planners decide."""
