import subprocess
import sys

from typing_extensions import override

from remembrancer.adapters.sealing.aes_gcm import AesGcmSealer
from remembrancer.application.ports import Sealer
from remembrancer.contracts.randomness import SeededRandomness
from remembrancer.contracts.sealer import IDENTITY, KEY, PLAINTEXT, SealerContract

# One source for all sealers of a run: two with the same seed would draw the same nonce.
RANDOMNESS = SeededRandomness()


class TestAesGcmSealer(SealerContract):
    @override
    def sealer(self) -> Sealer:
        return AesGcmSealer(randomness=RANDOMNESS)

    def test_carries_its_nonce_in_front_and_a_tag_behind(self) -> None:
        sealed = AesGcmSealer(randomness=SeededRandomness(7)).seal(
            PLAINTEXT, key=KEY, identity=IDENTITY
        )

        assert sealed.startswith(SeededRandomness(7).bytes(12))
        assert len(sealed) == 12 + len(PLAINTEXT) + 16


def test_importing_the_sealer_does_not_import_cryptography() -> None:
    code = (
        "import sys, remembrancer.adapters.sealing.aes_gcm; print('cryptography' in sys.modules)"
    )

    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert shown.strip() == "False"
