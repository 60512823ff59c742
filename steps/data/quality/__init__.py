"""Published quality rules: what each scores, its bound and the place it was taken from."""
