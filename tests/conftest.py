"""Settings of all tests: no deadline, because speed belongs into a benchmark, never into a test."""

from hypothesis import HealthCheck, settings

settings.register_profile("zaudit", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("zaudit")
