"""What a run may do: pure rules, used to decide while it runs and to re-prove afterwards.

- No clock, no disk, no randomness: times, states and documents are arguments.
- One function decides both times: live, a state and a proposed act give a decision; a replay folds the receipts in chain order
  through the same function and names the first that it would have refused.
- What is missing, unknown or unreadable is refused.
- Amounts are integers in the unit of their meter's name.

Source: docs/spec/rules/.
"""
