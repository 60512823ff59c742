"""What a model costs and gains with its size: the verb `seaglass scaling`."""
