"""Hosts that belong to a platform, not to the business whose page is on them."""

from collections.abc import Mapping

# By registrable domain.
DOMAINS: Mapping[str, str] = {
    domain: kind
    for kind, domains in {
        "a social network": """
            facebook.com fb.com fb.me m.me messenger.com instagram.com instagr.am threads.net threads.com twitter.com
            x.com t.co linkedin.com lnkd.in youtube.com youtu.be tiktok.com snapchat.com whatsapp.com wa.me t.me
            telegram.me telegram.org reddit.com tumblr.com vk.com ok.ru xing.com weibo.com mastodon.social bsky.app
            vimeo.com flickr.com soundcloud.com twitch.tv discord.com discord.gg line.me medium.com
            pin.it fb.watch wa.link
        """,
        "a map service": """
            goo.gl g.page g.co share.google posts.gle waze.com openstreetmap.org mapquest.com what3words.com here.com
        """,
        "a page of links": """
            linktr.ee bio.link beacons.ai lnk.bio campsite.bio taplink.cc about.me linkin.bio allmylinks.com solo.to
        """,
        "a shortened link": """
            bit.ly qrco.de tinyurl.com ow.ly is.gd buff.ly rebrand.ly cutt.ly rb.gy shorturl.at t.ly
        """,
        "a directory or marketplace": """
            foursquare.com yellowpages.com bbb.org thumbtack.com angi.com angieslist.com homeadvisor.com houzz.com
            booking.com expedia.com hotels.com opentable.com resy.com doordash.com ubereats.com grubhub.com
            postmates.com deliveroo.co.uk deliveroo.com just-eat.co.uk lieferando.de thefork.com treatwell.de
            treatwell.co.uk fresha.com vagaro.com booksy.com styleseat.com zomato.com etsy.com zocdoc.com
            healthgrades.com avvo.com findlaw.com trustpilot.com manta.com superpages.com checkatrade.com yell.com
            gelbeseiten.de dasoertliche.de pagesjaunes.fr paginegialle.it jameda.de doctolib.de doctolib.fr
            nextdoor.com porch.com networx.com buildzoom.com bark.com chamberofcommerce.com alignable.com indeed.com
            zillow.com realtor.com trulia.com homes.com poshmark.com seamless.com slicelife.com
            11880.com meinestadt.de golocal.de hotfrog.com cylex.de
        """,
        "a booking or ordering service": """
            calendly.com eventbrite.com setmore.com glossgenius.com squareup.com acuityscheduling.com as.me
            schedulicity.com janeapp.com mindbodyonline.com simplybook.me toasttab.com chownow.com menufy.com
            beyondmenu.com clover.com olo.com housecallpro.com appointy.com picktime.com phorest.com gettimely.com
        """,
    }.items()
    for domain in domains.split()
}

# By the label before the public suffix, for those that have a domain in every country.
NAMES: Mapping[str, str] = {
    "google": "Google",
    "pinterest": "a social network",
    "yelp": "a directory or marketplace",
    "tripadvisor": "a directory or marketplace",
    "airbnb": "a directory or marketplace",
    "amazon": "a directory or marketplace",
    "ebay": "a directory or marketplace",
    "yandex": "a map service",
}

# By host, where the rest of the domain is something else.
HOSTS: Mapping[str, str] = {
    "maps.apple.com": "a map service",
    "apps.apple.com": "an app store",
    "itunes.apple.com": "an app store",
    "www.bing.com": "a map service",
    "bing.com": "a map service",
}


# Where every customer has a name below the builder's own; the public suffix list knows others of this kind.
_BUILDERS = """
    godaddysites.com wordpress.com squarespace.com jimdosite.com jimdofree.com weebly.com weeblysite.com ueniweb.com
    site123.me strikingly.com mystrikingly.com webnode.com webnode.page edan.io negocio.site business.site
    business.page canva.site mailchimpsites.com hubspotpagebuilder.com multiscreensite.com homestead.com ubersite.co
    vistaprintdigital.com constantcontactsites.com websites.co.in eatbu.com simdif.com webador.com e-monsite.com
    over-blog.com jouwweb.nl mozello.com bravesites.com wpengine.com home.blog
"""
BUILDERS = frozenset(_BUILDERS.split())


def platform(host: str, registrable: str) -> str | None:
    """What kind of platform this host belongs to; None if it can be a business's own."""
    name = registrable.partition(".")[0]
    return HOSTS.get(host) or DOMAINS.get(registrable) or NAMES.get(name)
