"""One module for each thing that is measured. Each has `measure(settings, results)`."""
