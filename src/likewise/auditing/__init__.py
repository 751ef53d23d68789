"""The auditor's problem: the worst case over comparable people, its certificate and its significance."""
