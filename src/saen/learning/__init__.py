"""What users fit: estimators, cross-validation, training jobs, presets."""
