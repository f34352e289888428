"""Which addresses are the public internet. Asked of every address before anything is connected to it.

The lists are our own (IANA's special-purpose registries) because ipaddress.is_global differs between Python versions.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_NOT_PUBLIC_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local: the clouds' metadata service
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)
# Everything outside is loopback, mapped, NAT64, unique-local, link-local, multicast or not given out at all.
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # Teredo, ORCHID, benchmarks
        "2001:db8::/32",
        "2002::/16",  # 6to4: any IPv4 address inside
        "3fff::/20",
    )
)
_NUMBER = re.compile(r"\d+|0[xX][0-9a-fA-F]*")


def is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def literal(host: str) -> Address | None:
    """The address a host is, if it is one and written in the usual way."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def is_disguised(host: str) -> bool:
    """A number that resolvers read as an address, such as 2130706433, 0x7f.1 or 0177.0.0.1: no website writes that."""
    return literal(host) is None and _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is not None
