import pytest


@pytest.fixture
def poisoned():
    """Fill fresh memory with NaN, so that what a kernel leaves unwritten shows; one thread."""
    import torch  # noqa: PLC0415 - kernels without torch have tests here too

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    yield
    torch.use_deterministic_algorithms(mode=False)
    torch.set_num_threads(threads)
