"""Public halves of keys whose private halves are published: never to be trusted, and never to sign.

They come from standards and from our own vectors, whose seeds are SHA-256("receipt-ledger test key: <name>").
"""

from __future__ import annotations

from typing import Final

__all__ = ["PUBLISHED_TEST_KEYS"]

PUBLISHED_TEST_KEYS: Final = frozenset(
    "ed25519:" + digits
    for digits in (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",  # RFC 8032, 7.1, test 1
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",  # RFC 8032, test 2
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",  # RFC 8032, test 3
        "278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e",  # RFC 8032, test 1024
        "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29",  # seed of zeros
        "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c",  # seed of 01
        "76a1592044a6e4f511265bca73a604d90b0529d1df602be30a19a9257660d1f5",  # seed of ff
        "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",  # seed 00 01 02 ...
        "66e0b858e462a609e66fe71370c816d8846ff103d5499a22a7fec37fdbc424a7",  # Sigsum, seed 11 00 ...
        "4cb5abf6ad79fbf5abbccafcc269d85cd2651ed4b885b5869f241aedf0a5ba29",  # seed 00 ... 01
        "2152f8d19b791d24453242e15f2eab6cb7cffa7b6a5ed30097960e069881db12",  # seed of 42, the demo key of runx
        "e28a8970753332bd72fef413e6b0b2ef1b4aadda7aa2c141f233712a6876b351",  # runx, receipt-verify corpus and notary, seed of 47
        "d4eec1869fb1b8a4e817516ad5a931557cb56805c3eb16e8f3a803d647df7869",  # runx, unknown kid, seed of 48
        "2012cb90ca60e8e5d8daf66e2272d2233e0486d557e8c66141ed8920177d7eb7",  # runx, refund fixtures, seed of 52
        "1a5cd907143c384c41e830c5bce12aa8817ec5649aaabf2c31388b35b2d744d6",  # Go signed notes, PeterNeumann
        "e932791ae6e7a840a46164c904786426d5e7821dd8b29a00d61cae72afdd4da4",  # C2SP signed-note, example.com/foo
        "f8b66ff2d949ed15fa1b60e396ccde6ba1b0f484291099c1f7534b296320c1f7",  # ours, issuer
        "6cdcda2e47690ccd16c7f96571059a2969cf35e8e8a75a0a5236aff1904b9431",  # ours, issuer-2
        "34e0095c08f977cbcd778e9a49287aaf266971cac4d159466c16a4473294e47e",  # ours, log
        "d538e9f3a9f7fc7cd4ac448b930aeb160f544daca9ead801d05a779b71ede3c3",  # ours, log-2
        "1d3f645fd6e38dc2400e16142070eda17f7b512a57c91031558ce96219dc34a5",  # ours, approver
        "fa8718a7803c3518b7d072c55bd6186a0ad1040a28907726e7787e81246cb15a",  # ours, notary
        "e63dae643b2d5fcce2b0f9fe59e0850082549b1466731abaf14486a8fc165668",  # ours, witness
        "73449116dea343d3ff2a65d5cadef77c303fa0dd83e74c68422d16863872bca6",  # ours, other-issuer
        "92e8deea2a008a453326dff15ea70617305985f1c233e905cbd94c40dc91b8c4",  # ours, other-log
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",  # RFC 8032, 7.1 to 7.3
        "dfc9425e4f968f7f0c29f0259cf5f9aed6851c2bb4ad8bfb860cfee0ab248292",  # RFC 8032, 7.1 to 7.3
        "0f1d1274943b91415889152e893d80e93275a1fc0b65fd71b4b0dda10ad7d772",  # RFC 8032, 7.1 to 7.3
        "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1",  # RFC 8410, 10.3, or RFC 9421, B.1.4
        "26b40b8f93fff3d897112f7ebc582b232dbd72517d082fe83cfb30ddce43d1bb",  # RFC 8410, 10.3, or RFC 9421, B.1.4
        "7d4d0e7f6153a69b6242b522abbee685fda4420f8834b108c3bdae369ef549fa",  # the common key of the Wycheproof vectors
    )
)
"""Key ids."""
