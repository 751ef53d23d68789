"""The rows found so far (support), their frontiers, and V(ε) on them: the auditor's dual, solved exactly."""
