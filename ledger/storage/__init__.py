"""The only part that touches a disk: durable files, lock, keys, places, register, artifacts, journal."""
