"""The second state machine: functions, events, roles and grants that deploy a trained model."""
