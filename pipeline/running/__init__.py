"""How a plan is carried out: the driver's loop, attempts, executors, the diary, cancelling."""
