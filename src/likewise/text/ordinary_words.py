"""First names of the census that are ordinary words or places too: they count as names only in a name's place."""

from __future__ import annotations

__all__ = ["AFTER_A_PLACE_NAME", "ORDINARY", "PLACES_AND_TIMES"]

_PLACES_AND_TIMES = """
adelaide al alberta alexandria america angeles april argentina arizona asia august augusta aurora austin
autumn avis barcelona berlin bradford brooklyn burma carolina charlotte chester cheyenne china christian
christmas cleveland clinton columbus cornell dakota dallas de december del dell delta denver devon
dominica easter edison florence florida france geneva georgia german hilton houston india irish israel
jackson january jefferson jordan june kent kenya kia la latina le lincoln lisbon lorraine mac madison
march maryland may memphis mercedes meta mexico milan milford monday montana nevada newton noel november
october odessa olympia orlando paris phoenix porsche raleigh roma roman roosevelt samara san santa
santiago santo savanna savannah september sierra sofia spring stanford summer sunday sunni sydney tijuana
trenton trinidad troy tuesday un valencia van venice verona victoria vienna virginia von winter
"""
_WORDS = """
abbey ai aide alpha amber an angel angelic angle are art ashes aura baby basil be bee bell benedict
bethel bill blossom bo bong bonny booker boy brain brook brooks brother buck bud buddy buena bunny burton
by cal camellia candy caprice carol carry carter case chad chance charity chase chastity cherish cherry
chi chin cinderella clay cliff cole conception concha coral coy cruz crystal curt daisy dawn dean dee
deja desire destiny dia diamond dick dixie do doc don dot drew duke dung dusty earl earnest ebony echo
eden else emerald era esta eve fairy faith fallon fe fern fletcher flora flower for forest foster frank
gala gay gene general genesis genie ginger girl glory golden grant guy ha hall hang harley harmony hazel
he heath heather her herb hi hill his ho holly homer honey hong hope hue hung hunter ima in ina iris is
it ivory ivy ja jack jade jan jasmine jay jetta jewel joy judge junior ka karma katrina king kit lady
lance lane laurel lean les less libby liberty lien lily loan loma long lore love ma magnolia major man
mana manual many maple marine mark marquis marshall marvel mason max mckinley melody mercy merry mi mica
miles min mina miss modesto mon monte moon mora more my na nam napoleon nick no noble nova novella nu
numbers oh ok olive omega pa page palma pandora pasty pat patience patria paz pearl peg penny per pierce
ping precious price prince princess prudence pura queen raven ray read reed reyes rich rob robin rocky
rod rose rosemary rosy royal ruby rusty sage sally sandy sang scarlet season see sharon shay she shin
sister skipper so sol son song soon sparkle star starr sterling stone stormy su sue sun sung sunny
sunshine ta tawny tempie temple tequila terra tiara tierra tiny to tod tory trinity tu ty una us val
valentine velvet venus vi violet viva wade walker wan ward we wendy weston whitley will willow windy wood
yen yes you young yu
"""
_AFTER = """
street st avenue ave road rd lane drive square park place court bridge river lake island bay beach hill
hills valley county city town village airport station hotel hospital clinic college university school
institute academy church cathedral stadium museum library prize award effect inc ltd llc gmbh corp bank
brothers foundation press
"""

# Places, firms, months and days are written with a capital wherever they stand.
PLACES_AND_TIMES = frozenset(_PLACES_AND_TIMES.split())
ORDINARY = frozenset(_WORDS.split()) | PLACES_AND_TIMES

# A name before one of these is a place, a street, an institution or a firm.
AFTER_A_PLACE_NAME = frozenset(_AFTER.split())
