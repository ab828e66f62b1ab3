"""What a run may do: pure rules, used to decide while it runs and to re-prove afterwards."""
