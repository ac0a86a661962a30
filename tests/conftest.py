"""Settings for every test: property tests are judged by what they find, not by how busy the machine is."""

from hypothesis import settings

settings.register_profile("blowfishdb", deadline=None, print_blob=True)
settings.load_profile("blowfishdb")
